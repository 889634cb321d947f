import unittest

from shopping_cart_code import CartError, ShoppingCart

CODES = {"WELCOME": 10, "SPRING": 15, "HALF": 50}


class ShoppingCartTest(unittest.TestCase):
    def setUp(self):
        self.cart = ShoppingCart(CODES)

    def test_without_a_discount(self):
        self.cart.add("tea", 4.75, 2)
        self.cart.add("cup", 11.20)
        self.cart.add("tea", 4.75)
        self.cart.remove("cup")
        total = self.cart.total()
        self.assertEqual(total, 14.25)

    def test_a_code_at_the_end(self):
        self.cart.add("tea", 4.75, 2)
        self.cart.add("cup", 11.20)
        self.cart.redeem("WELCOME")
        total = self.cart.total()
        self.assertEqual(total, 18.63)

    def test_what_cannot_be_done(self):
        self.cart.add("tea", 4.75)
        with self.assertRaisesRegex(CartError, "^cannot add 0 of cup$"):
            self.cart.add("cup", 11.20, 0)
        with self.assertRaisesRegex(CartError, "^tea is in the cart at 4.75$"):
            self.cart.add("tea", 5.75)
        with self.assertRaisesRegex(CartError, "^there is no cup in the cart$"):
            self.cart.remove("cup")
        with self.assertRaisesRegex(CartError, "^AUTUMN is not valid$"):
            self.cart.redeem("AUTUMN")
        self.cart.redeem("HALF")
        with self.assertRaisesRegex(CartError, "^HALF is in use already$"):
            self.cart.redeem("WELCOME")

    def test_the_order_of_clicks_does_not_matter(self):
        self.cart.add("tea", 4.75, 2)
        self.cart.redeem("WELCOME")
        self.cart.add("cup", 11.20)
        self.cart.add("jar", 30.00)
        self.cart.remove("jar")
        total = self.cart.total()
        self.assertEqual(total, 18.63)

    def test_half_a_cent_counts_for_the_shop(self):
        totals = []
        for code, price in (("SPRING", 18.50), ("WELCOME", 8.45), ("HALF", 20.65), ("HALF", 7.25), ("HALF", 7.35)):
            cart = ShoppingCart(CODES)
            cart.redeem(code)
            cart.add("box", price)
            totals.append(cart.total())
        self.assertEqual(totals, [15.73, 7.61, 10.33, 3.63, 3.68])

    def test_receipt(self):
        self.cart.redeem("SPRING")
        self.cart.add("pen", 0.10, 3)
        self.cart.add("ink", 3.35, 4)
        self.cart.add("pad", 4.80)
        receipt = self.cart.receipt()
        self.assertEqual(
            receipt,
            "3 x pen at 0.10: 0.30\n"
            "4 x ink at 3.35: 13.40\n"
            "1 x pad at 4.80: 4.80\n"
            "SPRING: 15 percent off\n"
            "total: 15.73",
        )
